"""What lands in the user's repository, whatever the target."""
