KEPT int close_file(const place *at, long number)
{
    int sum = 0;
    for (int i = 0; i < at->x; i++) {
        __asm__ volatile("nop" : "+r"(sum) : : "memory");
        sum += i;
    }
    return number < 0 ? 1 : sum;
}
}
