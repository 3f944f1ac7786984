"""The nine blocks of the page, one module each: words and charts made from the summary and nothing else."""
