"""``python -m tconv`` is ``tconv``."""

from tconv.cli import main

if __name__ == "__main__":
    main()
