"""Numbers that Python and the compiled kernels share: CMake makes `constants.hpp` of the lines `NAME = number`."""

# Mixtures
SINGULAR = 1e-10  # relative variance; accepted fits of real tables stay above 7e-6, rounding sits near 1e-15
VANISHED = 1e-8  # share of the rows below which a soft component is gone

# Alternations between the volumes, shapes and axes of covariances
ROUNDS_IN_EM = 5  # generalised EM: an M-step that only improves is enough, and the next pass goes on from it
ROUNDS_ALONE = 1000
RUNAWAY = 100.0  # in log-volume; a fit that passes the singularity test stays far below
STILL = 1e-10  # relative change below which an alternation rests

# The search for axes common to free shapes: by a scan of angles, by sweeps in a race of starts, and the best to its end
SCAN_COLUMNS = 8  # up to here the first search scans angles; its cost grows as columns^2
N_ANGLES = 32  # of the first grid
N_FINER_GRIDS = 4
SCAN_GAIN = 1e-8  # a row, below which a move is not repeated
SCAN_LIMIT = 50
RACE_GAIN = 1e-5
RACE_LIMIT = 30
SWEEP_GAIN = 1e-12
SWEEP_LIMIT = 300

# The likelihood tree
TREE_GRID = 68719476736.0  # 2^36; rises this close are ties, as rounding differs between processors
