# Standard errors of mclust for one table that was made for the tests: `Rscript tests/agreement/make_standard_errors.R`.
# Writes golden/mclust_bootstrap.json; needs mclust and jsonlite. 2,000 resamples of both kinds, at its default
# tolerance; the model is the best of its structure at that K.
suppressMessages({ library(mclust); library(jsonlite) })
here <- dirname(sub("--file=", "", grep("--file=", commandArgs(FALSE), value = TRUE)))
N <- 2000
figures <- function(name, model, G) {
  table <- read.csv(file.path(here, "..", "data", paste0(name, ".csv")))
  data <- as.matrix(table[names(table) != "target"])
  fit <- Mclust(data, G = G, modelNames = model, verbose = FALSE)
  told <- function(type) {
    set.seed(1)
    found <- MclustBootstrap(fit, nboot = N, type = type, verbose = FALSE)
    se <- summary(found, what = "se")
    list(pro = I(unname(se$pro)), mean = lapply(seq_len(G), function(k) I(unname(as.matrix(se$mean)[, k]))),
         variance = lapply(seq_len(G), function(k) I(unname(diag(as.matrix(se$variance[, , k]))))))
  }
  list(table = name, model = model, G = G, n = nrow(data), loglik = fit$loglik,
       pro = I(fit$parameters$pro), mean = lapply(seq_len(G), function(k) I(unname(fit$parameters$mean[, k]))),
       nonparametric = told("bs"), weighted_likelihood = told("wlbs"))
}
written <- list(made_with = list(mclust = as.character(packageVersion("mclust")),
                                 R = paste(R.version$major, R.version$minor, sep = ".")),
                resamples = N, sets = list(figures("made_ridges", "VVV", 2)))
writeLines(toJSON(written, digits = NA, auto_unbox = TRUE), file.path(here, "golden", "mclust_bootstrap.json"))
