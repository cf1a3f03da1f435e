#!/bin/bash
# Adds up the numbers, one a line.
total=0
while read -r number; do
  total=$((total + number))
done < /app/numbers.txt
echo "$total" > /app/total.txt
