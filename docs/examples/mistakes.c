/* Two mistakes with heap memory, for the page about freed memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_BYTES = 24 };

typedef struct customer {
    char name[NAME_BYTES];
    int orders;
} customer;

customer *new_customer(const char *name)
{
    customer *made = calloc(1, sizeof(*made));
    if (made != NULL) {
        snprintf(made->name, sizeof(made->name), "%s", name);
    }
    return made;
}

void remove_customer(customer *old)
{
    free(old);
}

/* Reads the customer after it was freed. */
int count_orders(const customer *one)
{
    return one->orders;
}

/* Writes one byte more than there is. */
char *copy_name(const char *name)
{
    char *copy = malloc(strlen(name));
    if (copy != NULL) {
        memcpy(copy, name, strlen(name) + 1);
    }
    return copy;
}

int main(void)
{
    char *copy = copy_name("Erika Mustermann");
    free(copy);
    customer *one = new_customer("Erika Mustermann");
    remove_customer(one);
    printf("%d orders\n", count_orders(one));
    return 0;
}
