// A program that mostly runs code of its C++ library.
#include <iostream>

int main()
{
    std::cout << "hello " << 42 << std::endl;
}
