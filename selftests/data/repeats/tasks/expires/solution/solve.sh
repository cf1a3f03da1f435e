#!/bin/bash
echo 2028-02-29 > /app/leap-day.txt
