/* Calls the code in flags.S that reads flags. */
#include <stdio.h>

#define SAMPLES(take)                                                                              \
    take(behind_end) take(through_alignment) take(of_callee) take(twice) take(behind_both)         \
        take(by_pointer_behind) take(inside) take(by_pushed_label) take(by_pushed_function)        \
            take(through_thunk) take(unseen) take(unseen_jump) take(outside) take(by_count)        \
                take(by_distance) take(by_name) take(by_slot)

#define DECLARE(name) long asks_##name(long x);
#define LIST(name) {#name, asks_##name},

SAMPLES(DECLARE)

int main(void)
{
    static const struct {
        const char *name;
        long (*ask)(long x);
    } samples[] = {SAMPLES(LIST)};
    for (unsigned i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
        printf("%s:", samples[i].name);
        for (long x = 5; x < 15; x++) {
            printf(" %ld", samples[i].ask(x));
        }
        printf("\n");
    }
    return 0;
}
