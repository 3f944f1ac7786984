# Figures of mclust and R for the tables that were made for the tests: `Rscript tests/agreement/make_golden.R`.
# Needs mclust, cluster and jsonlite; the versions that ran are written into every file.
suppressMessages({ library(mclust); library(cluster); library(jsonlite) })

here <- dirname(sub("--file=", "", grep("--file=", commandArgs(FALSE), value = TRUE)))
version <- function(package) as.character(packageVersion(package))
r_version <- paste(R.version$major, R.version$minor, sep = ".")
read_table <- function(name) read.csv(file.path(here, "..", "data", paste0(name, ".csv")))
numbers_of <- function(table) as.matrix(table[names(table) != "target"])
keep <- function(name, figures)
  writeLines(toJSON(figures, digits = NA, auto_unbox = TRUE, na = "null"),
             file.path(here, "golden", paste0(name, ".json")))
by_rows <- function(matrix) lapply(seq_len(nrow(matrix)), function(i) I(unname(matrix[i, ])))
finite <- function(value) if (length(value) == 1 && is.finite(value)) value else NA

# --- mclust -----------------------------------------------------------------------------------------------
parameters_of <- function(found, d, digits = 15) {
  variance <- rapply(found$variance, signif, "numeric", how = "replace", digits = digits)
  found <- rapply(found[c("pro", "mean")], signif, how = "replace", digits = digits)
  told <- list(pro = I(found$pro), mean = if (d == 1) I(as.vector(found$mean)) else by_rows(t(found$mean)))
  if (d == 1) told$sigmasq <- I(rep_len(variance$sigmasq, length(found$pro)))
  else told$sigma <- lapply(seq_along(found$pro), function(k) by_rows(as.matrix(variance$sigma[, , k])))
  told
}

m_step <- function(data, model, z) {
  found <- tryCatch(suppressWarnings(mstep(data, modelName = model, z = z)), error = function(e) NULL)
  if (is.null(found) || anyNA(unlist(found$parameters))) return(NULL)
  list(parameters = found$parameters,
       loglik = estep(data, modelName = model, parameters = found$parameters)$loglik)
}

run_from <- function(data, model, partition) {
  z <- unmap(partition)
  G <- ncol(z)
  run <- function(...) suppressWarnings(me(data, modelName = model, z = z, ...))
  default <- run()
  tight <- run(control = emControl(tol = c(1e-13, 1e-12), itmax = c(20000, 10000)))
  first <- m_step(data, model, z)
  told <- list(loglik_after_first_mstep = if (is.null(first)) NA else finite(first$loglik),
               loglik_default_tol = finite(default$loglik), loglik_converged = finite(tight$loglik),
               npar = nMclustParams(model, ncol(data), G))
  if (is.na(told$loglik_converged)) told else c(told, parameters_of(tight$parameters, ncol(data), 9))
}

starts_of <- function(data, target) {
  set.seed(1)
  found <- list()
  if (ncol(data) > 1) {
    tree <- hc(data, modelName = "VVV", use = "SVD")
    for (G in 2:3) found[[paste0("hc_VVV_SVD_G", G)]] <- as.vector(hclass(tree, G))
  }
  for (G in 2:3) found[[paste0("kmeans_G", G)]] <- kmeans(data, G, nstart = 20)$cluster
  found$target <- as.integer(factor(target, unique(target)))
  found
}

mclust_figures <- function(name) {
  table <- read_table(name)
  data <- numbers_of(table)
  d <- ncol(data); n <- nrow(data)
  models <- if (d == 1) c("E", "V") else mclust.options("emModelNames")
  each <- function(what) sapply(models, what, simplify = FALSE)
  bic <- mclustBIC(data, G = 1:9, verbose = FALSE)
  icl <- mclustICL(data, G = 1:9, verbose = FALSE)
  npar <- each(function(m) I(sapply(1:9, function(G) nMclustParams(m, d, G))))
  best <- Mclust(data, x = bic, verbose = FALSE)
  set.seed(2)
  soft <- t(apply(matrix(runif(n * 3, 0.2, 1), n), 1, function(w) round(1000 * w / sum(w))))
  soft[, 3] <- 1000 - soft[, 1] - soft[, 2]
  list(
    dataset = name, n = n, d = d, columns = I(colnames(data)),
    made_with = list(mclust = version("mclust"), R = r_version),
    conventions = list(bic = "2*loglik - npar*log(n); larger is better", labels = "1-based"),
    npar = npar,
    bic = each(function(m) I(as.vector(bic[, m]))),
    loglik = each(function(m) I((as.vector(bic[, m]) + npar[[m]] * log(n)) / 2)),
    icl = each(function(m) I(as.vector(icl[, m]))),
    chosen = c(list(model = best$modelName, G = best$G, loglik = best$loglik, npar = best$df,
                    bic = best$bic, icl = best$icl, uncertainty = I(unname(best$uncertainty))),
               parameters_of(best$parameters, d)),
    em_from_start = lapply(starts_of(data, table$target), function(partition) list(
      G = max(partition), partition = I(unname(partition)),
      models = each(function(m) run_from(data, m, partition)))),
    mstep_from_soft = list(G = 3, z_times_1000 = by_rows(soft), models = each(function(m) {
      found <- m_step(data, m, soft / 1000)
      c(list(loglik_of_result = found$loglik), parameters_of(found$parameters, d))
    })))
}

# --- kmeans, pam and silhouettes --------------------------------------------------------------------------
run_of <- function(data, K) {
  set.seed(K)
  best <- kmeans(data, K, nstart = 300, iter.max = 1000)
  lloyd <- lapply(1:3, function(i) {
    rows <- sample(nrow(data), K)
    found <- kmeans(data, data[rows, , drop = FALSE], algorithm = "Lloyd", iter.max = 1000)
    list(start_rows = I(rows - 1), within_ss = found$tot.withinss, withinss_per_cluster = I(found$withinss),
         iterations = found$iter, sizes = I(found$size), labels = I(unname(found$cluster)),
         centers = by_rows(found$centers))
  })
  around <- pam(data, K)
  wide <- silhouette(best$cluster, dist(data))
  list(K = K, best_within_ss = best$tot.withinss, lloyd = lloyd, best_labels = I(unname(best$cluster)),
       silhouette_mean = mean(wide[, 3]), silhouette_first10 = I(wide[1:10, 3]),
       silhouette_per_cluster = I(as.vector(tapply(wide[, 3], best$cluster, mean))),
       calinski_harabasz = (best$betweenss / (K - 1)) / (best$tot.withinss / (nrow(data) - K)),
       pam = list(medoid_rows = I(around$id.med - 1), objective = I(unname(around$objective)),
                  labels = I(unname(around$clustering)), avg_silhouette = around$silinfo$avg.width))
}

set_of <- function(name, scaled, Ks) {
  data <- numbers_of(read_table(name))
  if (scaled) data <- scale(data)
  list(table = name, scaled = scaled, n = nrow(data), d = ncol(data), runs = lapply(Ks, function(K) run_of(data, K)))
}

# Of the groups in `target`, in the order of their names.
apart <- function(name) {
  table <- read_table(name)
  data <- numbers_of(table)
  group <- as.integer(factor(table$target))
  far <- as.matrix(dist(data))
  centre <- apply(data, 2, function(column) tapply(column, group, mean))
  to_own <- sqrt(rowSums((data - centre[group, ])^2))
  list(table = name,
       clusters = lapply(1:max(group), function(k) list(
         size = sum(group == k), cohesion_inverse_ordered_pairs = 1 / sum(far[group == k, group == k]),
         cohesion_sum_to_centroid = sum(to_own[group == k]), sum_squares = sum(to_own[group == k]^2))),
       pairs = combn(max(group), 2, function(pair) list(
         pair = I(pair - 1), separation_sum = sum(far[group == pair[1], group == pair[2]]),
         separation_centroids = sqrt(sum((centre[pair[1], ] - centre[pair[2], ])^2))), simplify = FALSE))
}

# --- Gower ------------------------------------------------------------------------------------------------
daisy_of <- function(name) {
  table <- read_table(name)
  for (column in paste0("V", 1:4)) table[[column]] <- factor(table[[column]])
  as_told <- function(...) by_rows(round(unname(as.matrix(daisy(table, metric = "gower", ...))), 14))
  binary <- within(table, { V3 <- as.integer(as.character(V3)) })
  one_sided <- suppressWarnings(daisy(binary, metric = "gower", type = list(asymm = "V3")))
  list(table = name, gower_default = as_told(), gower_V3_asymmetric = by_rows(round(unname(as.matrix(one_sided)), 14)))
}

for (name in c("made_line", "made_ridges", "made_shapes", "made_batches"))
  keep(paste0("mclust_", name), mclust_figures(name))
made_with <- list(R = r_version, cluster = version("cluster"))
keep("r_made_tables", list(
  made_with = made_with,
  conventions = list(rows = "start_rows and medoid_rows are 0-based; labels are 1-based",
                     scaled = "columns minus mean, over the standard deviation with divisor n-1",
                     best = "lowest total within sum of squares over 300 Hartigan-Wong starts"),
  sets = list(made_places = set_of("made_places", FALSE, 3:5), made_ridges_scaled = set_of("made_ridges", TRUE, 2:3),
              made_shapes = set_of("made_shapes", FALSE, 3), made_batches = set_of("made_batches", FALSE, 2:3)),
  cohesion_separation = apart("made_places")))
keep("r_gower_made_garden", c(list(made_with = made_with), daisy_of("made_garden")))
