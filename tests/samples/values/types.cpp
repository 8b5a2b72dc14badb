#include <cstdio>
#include <string>
#include <string_view>
struct Owner {
    std::string held;
    explicit Owner(const char *text) : held(text)
    {
    }
};
struct Triple {
    long a, b, c;
};
__attribute__((noipa)) int take(const std::string &text, std::string copy, std::string_view view,
                                int last)
{
    return static_cast<int>(text.size() + copy.size() + view.size()) + last;
}
__attribute__((noipa)) Triple place(Owner owner, int number, Triple many, long last)
{
    return {number, last, static_cast<long>(owner.held.size()) + many.a};
}
__attribute__((noipa)) std::string made(int number)
{
    return std::string(static_cast<size_t>(number), 'x');
}
struct Counter {
    int start;
    __attribute__((noipa)) long add(short by, float share);
};
long Counter::add(short by, float share)
{
    return start + by + static_cast<long>(share);
}
int main()
{
    Counter counter{5};
    return take("by reference, and longer than what it holds itself", "copied",
                std::string_view("seen").substr(1), -4) +
               static_cast<int>(place(Owner("of its own"), 41, {1, 2, 3}, 77).a +
                                counter.add(-3, 1.5F)) +
               static_cast<int>(made(20).size() + made(9).size()) ==
           0;
}
