// A program of two source files, namespaces and named threads, whose calls are known.
#include <pthread.h>
#include <unistd.h>

#include <cstdio>
#include <ctime>

extern "C" int part_add(int value);
extern "C" int part_local_calls(int rounds);

namespace shop
{
class Basket
{
  public:
    __attribute__((noinline)) int add(int value)
    {
        return part_add(value) + 1;
    }
};
__attribute__((noinline)) int fill(int rounds)
{
    Basket basket;
    volatile int sum = 0;
    for (int i = 0; i < rounds; i++) {
        sum += basket.add(i);
    }
    return sum;
}
} // namespace shop

namespace bank
{
__attribute__((noinline)) int pay(int value)
{
    volatile int sum = value;
    sum += 1;
    return sum;
}
__attribute__((noinline)) void wait(int milliseconds)
{
    timespec rest = {0, milliseconds * 1000000L};
    nanosleep(&rest, nullptr);
    pay(1);
}
} // namespace bank

static pthread_barrier_t barrier;

static void *run(void *name)
{
    pthread_setname_np(pthread_self(), static_cast<const char *>(name));
    shop::fill(100);
    pthread_barrier_wait(&barrier);
    bank::wait(20);
    return nullptr;
}

// With `hold`, the threads wait with their names set until the input ends.
int main(int argc, char **)
{
    char byte;
    pthread_barrier_init(&barrier, nullptr, 4);
    const char *names[] = {"net-reader", "net-writer", "painter"};
    volatile int sum = shop::fill(1000) + part_local_calls(50);
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) {
        pthread_create(&threads[i], nullptr, run, const_cast<char *>(names[i]));
    }
    while (argc > 1 && read(STDIN_FILENO, &byte, 1) > 0) {
    }
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], nullptr);
    }
    for (int i = 0; i < 3; i++) {
        bank::wait(20);
    }
    std::printf("%d\n", sum);
    return 0;
}
