#!/bin/bash
# The word stands alone in the file, with a line end behind it.
echo hello > /app/greeting.txt
