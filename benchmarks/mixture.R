# mclust::me from given memberships: rows columns k passes structure data labels
given <- commandArgs(trailingOnly = TRUE)
source(file.path(given[1], "clock.R"))
suppressPackageStartupMessages(library(mclust))
shape <- as.integer(given[2:5])
x <- read_matrix(given[7], shape[1], shape[2])
label <- as.integer(read_matrix(given[8], shape[1], 1)) + 1L
z <- matrix(0, shape[1], shape[3])
z[cbind(seq_len(shape[1]), label)] <- 1
# The first of each pair rules the passes, the second what happens inside the M step of some structures.
control <- emControl(itmax = c(shape[4], .Machine$integer.max), tol = c(0, sqrt(.Machine$double.eps)))
found <- clocked(function() me(data = x, modelName = given[6], z = z, control = control))
# The first entry, by place as its name varies; with a minus sign where the limit ended the passes.
tell("passes", abs(attr(found, "info")[[1]]))
tell("loglik", found$loglik)
