/* The smallest program. */
int main(void)
{
    return 0;
}
