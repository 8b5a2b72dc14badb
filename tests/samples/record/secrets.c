/* Passes texts to functions: one that the environment has (SECRET), and one that everybody may
 * know. Then it prints its process id, waits for a line, and ends. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__attribute__((noinline)) size_t log_in(const char *user, const char *password, int tries)
{
    return strlen(user) + strlen(password) + (size_t)tries;
}

__attribute__((noinline)) size_t sign_up(const char *password, int number)
{
    return strlen(password) + (size_t)number;
}

__attribute__((noinline)) size_t greet(const char *name)
{
    return strlen(name);
}

int main(void)
{
    const char *secret = getenv("SECRET");
    secret = secret != NULL ? secret : "none";
    size_t length = log_in("user", secret, 3);
    length += sign_up(secret, 4);
    length += greet("everybody");
    printf("%d\n", length != 0 ? (int)getpid() : 0);
    fflush(stdout);
    return getchar() == EOF;
}
