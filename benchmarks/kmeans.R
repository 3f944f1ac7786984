# stats::kmeans, Lloyd, from given centres: rows columns k passes data centres result
given <- commandArgs(trailingOnly = TRUE)
source(file.path(given[1], "clock.R"))
shape <- as.integer(given[2:5])
x <- read_matrix(given[6], shape[1], shape[2])
centres <- read_matrix(given[7], shape[3], shape[2])
found <- clocked(function() kmeans(x, centres, iter.max = shape[4], algorithm = "Lloyd"))
# Where the pass limit ended the run, R counts one more than it did.
tell("passes", min(found$iter, shape[4]))
writeBin(as.vector(found$centers), given[8])
