/* The second module of tail_forms.c. */
long library_leaf(long x);

long library_leaf(long x)
{
    __asm__ volatile("");
    return x + 1;
}
