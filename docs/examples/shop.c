/* A small shop for the tutorial: sells orders, looks up prices, asks a bank that is slow. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ITEMS = 400, USUAL_LINES = 20, LINES_OF_A_HOTEL = 900, HOTEL = 77, BANK_MS = 50 };

static int prices[ITEMS];

/* Walks the list of prices up to the item. */
int price_of(int item)
{
    int price = 0;
    for (int row = 0; row <= item % ITEMS; row++) {
        price = prices[row];
    }
    return price;
}

int total_of(int order, int lines)
{
    int total = 0;
    for (int line = 0; line < lines; line++) {
        total += price_of(order * 31 + line * 7);
    }
    return total;
}

int ask_bank(int total)
{
    const struct timespec until_answer = {.tv_nsec = BANK_MS * 1000000};
    nanosleep(&until_answer, NULL);
    return total > 0;
}

int sell(int order)
{
    const int total = total_of(order, order == HOTEL ? LINES_OF_A_HOTEL : USUAL_LINES);
    return order % 40 == 0 ? ask_bank(total) : total > 0;
}

/* shop [ORDERS [ROUNDS]] */
int main(int argc, char **argv)
{
    const int orders = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 100;
    const int rounds = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 1;
    for (int item = 0; item < ITEMS; item++) {
        prices[item] = item * 3 + 1;
    }
    int sold = 0;
    for (int round = 0; round < rounds; round++) {
        for (int order = 1; order <= orders; order++) {
            sold += sell(order);
        }
    }
    printf("%d orders sold\n", sold);
    return 0;
}
