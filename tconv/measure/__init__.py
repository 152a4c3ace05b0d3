"""Looking at values without converting them: statistics, differences, and rules that they keep or break."""
