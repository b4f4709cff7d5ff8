"""Many runs: which they are (plan), one of them (cell), all of them (pool), and what they found
(table)."""
