#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int count, char **arguments)
{
    for (int i = 1; i < count; i++) {
        const int number = (int)strtol(arguments[i], NULL, 10);
        const int result = isatty(number + 70);
        printf("%d %d %.1f\n", number, result, strtod(arguments[i], NULL));
    }
    return 0;
}
