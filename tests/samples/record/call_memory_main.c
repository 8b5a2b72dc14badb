int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    int numbers[THREADS];
    if (argc > 1) { /* runs until the file argv[1] exists */
        FILE *out = fopen(getenv("TALLY"), "w");
        seed = 5;
        for (long number = 0; access(argv[1], F_OK) != 0; number++) {
            MEASURED(mem_numbered(number));
        }
        return fclose(out);
    }
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        pthread_create(&threads[i], NULL, run, &numbers[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    return 0;
}
