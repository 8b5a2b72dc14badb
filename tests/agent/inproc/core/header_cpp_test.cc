// The public header in C++; see header_c89_test.c.
#include "agent/include/sojourn.h"

int main()
{
    sojourn_mark_begin("phase");
    sojourn_mark_end("phase");
    sojourn_start();
    sojourn_stop();
    sojourn_dump_flight();
    sojourn_frame_tick();
    return 0;
}
