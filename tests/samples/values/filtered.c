#define KEPT __attribute__((noipa))
KEPT int inner(int number)
{
    return number + 1;
}
KEPT long outer(int first, int count)
{
    volatile long sum = 0;
    for (int i = 0; i < count; i++) {
        sum += inner(i);
    }
    for (volatile long i = 0; i < 20000000; i++) {
    }
    return sum + first;
}
int main(void)
{
    return outer(41, 1000) != 500541;
}
