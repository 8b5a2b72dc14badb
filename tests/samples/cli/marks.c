/* Is built with the header of an installation. */
#include <sojourn.h>

int main(void)
{
    sojourn_mark_begin("installed");
    sojourn_mark_end("installed");
    return 0;
}
