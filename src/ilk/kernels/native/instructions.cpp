// The kernels for one instruction set. Compiled three times; ILK_INSTRUCTIONS names the set and the build
// passes the flags that allow it.
#include "content.hpp"
#include "mixture.hpp"
#include "nearest.hpp"
#include "product.hpp"
#include "run.hpp"
#include "silhouette.hpp"
#include "tree.hpp"

#define ILK_JOIN(a, b) a##b
#define ILK_TABLE(name) ILK_JOIN(name, _kernels)
#define ILK_TEXT(name) #name
#define ILK_NAME(name) ILK_TEXT(name)

namespace ilk {

extern const Kernels ILK_TABLE(ILK_INSTRUCTIONS) = {
    ILK_NAME(ILK_INSTRUCTIONS),
    {nearest_step<float>, nearest<float>, distances<float>, mixture_step<float>, mixture_scores<float>,
     mixture_labels<float>, mixture_gather<float>, product_scores<float>, product_step<float>, product_sums<float>,
     column_ranges<float>, content_sums<float>},
    {nearest_step<double>, nearest<double>, distances<double>, mixture_step<double>, mixture_scores<double>,
     mixture_labels<double>, mixture_gather<double>, product_scores<double>, product_step<double>,
     product_sums<double>, column_ranges<double>, content_sums<double>},
    group_sums,
    tally,
    add_pairs,
    silhouette_sums,
    memberships,
    quick::update_covariance,
    quick::covariance_room,
    quick::whiten_all,
    quick::mixture_run,
    quick::grow_tree,
};

}  // namespace ilk
