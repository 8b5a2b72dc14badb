#include <errno.h>
__attribute__((noipa)) int err_try(int number)
{
    errno = number;
    return number == 0 ? 1 : -1;
}
int main(void)
{
    for (int i = 0; i < 3; i++) {
        err_try(2);
        err_try(0);
        err_try(13);
    }
    return 0;
}
