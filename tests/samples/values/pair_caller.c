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
pair scaled(const char *name, color of, double share, pair given);
whole filled(const pair *from);
int apart(int number);
int by_name(int number);
int called(int number);
long double precise(int number, long double by);
int main(void)
{
    const pair got = scaled("over there", GREEN, 1.5, (pair){40, RED});
    return (int)got.a + filled(&got).low + apart(4) - 91 + by_name(6) - 7 + called(8) - 9 +
           (precise(3, -0.125L) != -0.375L);
}
