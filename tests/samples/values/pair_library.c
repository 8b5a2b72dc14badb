typedef enum color { RED, GREEN = 5 } color;
typedef struct pair {
    long a;
    color b;
} pair;
typedef struct whole {
    int low;
    double high;
    long rest;
} whole;
__attribute__((noipa)) pair scaled(const char *name, color of, double share, pair given)
{
    return (pair){given.a + (long)(share * 2) + (name[0] == 'x'), of};
}
__attribute__((noipa)) whole filled(const pair *from)
{
    return (whole){(int)from->a, 0.5, 7};
}
__attribute__((noipa)) int apart(int number)
{
    return number + 1;
}
int by_name(int number) __attribute__((alias("apart")));
int called(int number) __attribute__((alias("apart")));
__attribute__((noipa)) long double precise(int number, long double by)
{
    return number * by;
}
