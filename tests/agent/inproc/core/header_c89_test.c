/* Compiles the public header in strict C89; header_cpp_test.cc does it in C++. Linked and run
 * without the agent, every call does nothing. */
#include "agent/include/sojourn.h"

int main(void)
{
    sojourn_mark_begin("phase");
    sojourn_mark_end("phase");
    sojourn_start();
    sojourn_stop();
    sojourn_dump_flight();
    sojourn_frame_tick();
    return 0;
}
