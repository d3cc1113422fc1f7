"""What was learned and made: experiences, Q-values, candidates, verdicts, outcomes, jobs."""
