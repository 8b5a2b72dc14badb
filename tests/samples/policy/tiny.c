/* A library without debug data; a file gives its prototypes. With TINY_USER, a program that calls
 * the library. */
int tiny_sum(int a, const char *t, double x);

#ifdef TINY_USER
int main(void)
{
    return tiny_sum(1, "abc", 2.5) - 100;
}
#else
int tiny_sum(int a, const char *t, double x)
{
    return a + t[0] + (int)x;
}
#endif
