/* A program whose work lies in zlib: zlib_sums ROUNDS. Each round takes about 0.2 ms. */
#include <stdlib.h>

unsigned long crc32(unsigned long crc, const unsigned char *bytes, unsigned length);

static unsigned char bytes[1 << 20];

int main(int argc, char **argv)
{
    unsigned long crc = 0;
    for (int i = argc > 1 ? atoi(argv[1]) : 0; i > 0; i--) {
        crc = crc32(crc, bytes, sizeof(bytes));
    }
    return crc == 1;
}
