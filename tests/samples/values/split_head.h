#ifdef __clang__
#define KEPT __attribute__((noinline))
#else
#define KEPT __attribute__((noipa))
#endif
enum color { RED, GREEN = 5 };
struct place {
    int x;
    double y;
    color of;
};
extern "C" {
int open_file(const char *path, int flags, double share, const place *at);
int close_file(const place *at, long number);
