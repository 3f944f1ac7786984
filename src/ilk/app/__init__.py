"""`ilk open`: a page on this machine to work in, over run folders as `ilk fit` writes them."""
