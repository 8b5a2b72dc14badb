// A program that is mostly its C++ library.
#include <iostream>

int main()
{
    std::cout << "hello " << 42 << std::endl;
}
