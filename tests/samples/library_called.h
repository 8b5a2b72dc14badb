/* The functions of a library that library_calls.cpp calls. */
#ifndef SAMPLE_LIBRARY_CALLED_H
#define SAMPLE_LIBRARY_CALLED_H

#ifdef __cplusplus
extern "C" {
#endif

struct called_large {
    long words[8];
};

int called_add(int a, int b);
double called_many(int a, double b, long c, float d, int e, int f, int g, int h, double i, int j,
                   long k);
struct called_large called_struct(int seed);
long double called_long_double(long double value);
double called_variadic(int count, ...);
int called_back(int (*back)(int), int value);
void called_throw(int value);
void called_jump(void *buffer);
int called_fail(void); /* sets errno to 42 */
int called_address(void);
void (*called_own_address(void))(void);

#ifdef __cplusplus
}
#endif

#endif
