#include <new>
#include <string>
#include <vector>
struct alignas(128) wide {
    char bytes[300];
};
extern "C" void *volatile keep_object;
void *volatile keep_object;
extern "C" __attribute__((noipa)) void mem_objects(unsigned round)
{
    std::vector<std::string> texts;
    for (unsigned i = 0; i < 20 + round; i++) {
        texts.push_back(std::string(i * 7 % 100, 'x'));
    }
    wide *one = new wide;
    keep_object = one;
    delete one;
    int *many = new int[round * 31 + 1];
    keep_object = many;
    delete[] many;
    long *number = new (std::nothrow) long;
    keep_object = number;
    delete number;
    keep_object = &texts;
}
