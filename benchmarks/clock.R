# Time and peak memory of one call, taken inside R.

resident <- function(field) {
  lines <- tryCatch(readLines("/proc/self/status"), error = function(e) character(0))
  line <- grep(paste0("^", field, ":"), lines, value = TRUE)
  if (length(line) == 1) as.numeric(gsub("[^0-9]", "", line)) * 1024 else NA
}

read_matrix <- function(path, rows, columns) {
  matrix(readBin(path, "double", rows * columns), rows, columns)
}

tell <- function(key, value) cat(key, format(value, digits = 17, scientific = FALSE), "\n")

clocked <- function(call) {
  invisible(gc(full = TRUE))
  forgotten <- tryCatch({ cat("5", file = "/proc/self/clear_refs"); TRUE }, error = function(e) FALSE)
  before <- resident("VmRSS")
  times <- system.time(result <- suppressWarnings(call()), gcFirst = FALSE)
  tell("seconds", times[["elapsed"]])
  tell("processor_seconds", times[["user.self"]] + times[["sys.self"]])
  if (forgotten && !is.na(before)) tell("extra_bytes", resident("VmHWM") - before)
  result
}
