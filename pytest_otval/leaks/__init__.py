"""What an image gives away: answers of the task that an agent finds in it."""
