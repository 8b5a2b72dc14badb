__attribute__((noipa)) long double crowded(long double a, long double b, long double c,
                                           long double d, long double e, long double f,
                                           long double g, int last)
{
    return a + b + c + d + e + f + g + last;
}
int main(void)
{
    return crowded(1, 2, 3, 4, 5, 6, 7, 8) != 36;
}
