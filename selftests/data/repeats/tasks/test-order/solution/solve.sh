#!/bin/bash
echo $((6 + 7)) $((6 * 7)) > /app/numbers.txt
