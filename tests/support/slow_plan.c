/* For tests of slow plans: planning a FIFO waits until the test opens it for writing. Link with
 * -Wl,--wrap=sj_plan_make. */
#include "agent/planner/planner.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

sj_status __real_sj_plan_make(const sj_planner_options *options, sj_plan *plan, sj_error *error);
sj_status __wrap_sj_plan_make(const sj_planner_options *options, sj_plan *plan, sj_error *error);

sj_status __wrap_sj_plan_make(const sj_planner_options *options, sj_plan *plan, sj_error *error)
{
    struct stat status;
    if (stat(options->module_path, &status) == 0 && S_ISFIFO(status.st_mode)) {
        close(open(options->module_path, O_RDONLY | O_CLOEXEC));
    }
    return __real_sj_plan_make(options, plan, error);
}
