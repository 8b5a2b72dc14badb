#include <cstddef>
#include <vector>
#ifdef __clang__
#define KEPT __attribute__((noinline))
#else
#define KEPT __attribute__((noipa))
#endif
#define USED __asm__ volatile("nop; nop; nop" : : : "memory");
struct node {
    int key;
    double share;
    node *next;
};
struct owned {
    node *first;
    int count;
    owned(node *of, int many) : first(of), count(many)
    {
    }
    ~owned()
    {
        first = nullptr;
    }
};
struct above {
    short level;
};
struct both : above {
    float x, y;
};
extern "C" {
KEPT node *found(node *from, int key)
{
    USED return from->key == key ? from : nullptr;
}
KEPT const node &same(const node &from)
{
    USED return from;
}
KEPT owned kept(node *from)
{
    USED return owned(from, 3);
}
KEPT both mixed(int level)
{
    USED both made;
    made.level = static_cast<short>(level);
    made.x = 0.5F;
    made.y = -2;
    return made;
}
KEPT std::vector<int> many(int count)
{
    USED return std::vector<int>(static_cast<std::size_t>(count), 7);
}
KEPT node *wrong()
{
    USED return reinterpret_cast<node *>(static_cast<std::size_t>(8));
}
}
int main()
{
    node one{4, 0.25, nullptr};
    found(&one, 4);
    found(&one, 5);
    same(one);
    kept(&one);
    mixed(-3);
    many(6);
    wrong();
    return 0;
}
