"""Links from a task to what it worked on."""
