#include "tests/agent/inproc/core/test_recorder.h"

#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

void test_recorder_open(test_recorder *self, test_recorder_fault fault, bool follow_children)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memset(self, 0, sizeof(*self));
    self->fault = fault;
    self->welcome = (sj_link_welcome){.max_threads = 4,
                                      .chunks_per_thread = 8,
                                      .full_policy = 1,
                                      .follow_children = follow_children};
    char cwd[256];
    assert_non_null(getcwd(cwd, sizeof(cwd)));
    snprintf(self->directory, sizeof(self->directory), "recorder-XXXXXX");
    assert_non_null(mkdtemp(self->directory));
    self->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    snprintf(address.sun_path, sizeof(address.sun_path), "%s/control", self->directory);
    if (fault != FAULT_NO_SOCKET) {
        assert_int_equal(bind(self->listener, (const struct sockaddr *)&address, sizeof(address)),
                         0);
        assert_int_equal(listen(self->listener, 8), 0);
    }
}

void test_recorder_close(test_recorder *self)
{
    char command[128];
    close(self->listener);
    snprintf(command, sizeof(command), "rm -rf %s", self->directory);
    assert_int_equal(system(command), 0);
}

/* Returns the address of a function in the symbol table of an ELF file, or 0 if it is not there. */
static uint64_t find_symbol(const char *path, const char *name)
{
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    struct stat status;
    uint64_t found = 0;
    if (file < 0 || fstat(file, &status) != 0) {
        return 0;
    }
    const char *bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    const Elf64_Ehdr *header = (const void *)bytes;
    const Elf64_Shdr *sections = (const void *)(bytes + header->e_shoff);
    for (uint32_t i = 0; i < header->e_shnum; i++) {
        if (sections[i].sh_type != SHT_SYMTAB) {
            continue;
        }
        const Elf64_Sym *symbols = (const void *)(bytes + sections[i].sh_offset);
        const char *names = bytes + sections[sections[i].sh_link].sh_offset;
        for (uint64_t s = 0; s < sections[i].sh_size / sizeof(*symbols); s++) {
            found = strcmp(names + symbols[s].st_name, name) == 0 ? symbols[s].st_value : found;
        }
    }
    munmap((void *)(uintptr_t)bytes, (size_t)status.st_size);
    close(file);
    return found;
}

static void send_packet(int socket, sj_link_type type, const void *payload, uint32_t bytes,
                        const char *tail)
{
    uint8_t packet[4096];
    const uint32_t tail_bytes = tail != NULL ? (uint32_t)strlen(tail) : 0;
    const sj_link_packet header = {
        .version = SJ_LINK_VERSION, .type = (uint16_t)type, .payload_bytes = bytes + tail_bytes};
    memcpy(packet, &header, sizeof(header));
    if (bytes != 0) {
        memcpy(packet + sizeof(header), payload, bytes);
    }
    if (tail_bytes != 0) {
        memcpy(packet + sizeof(header) + bytes, tail, tail_bytes);
    }
    (void)!send(socket, packet, sizeof(header) + bytes + tail_bytes, MSG_NOSIGNAL);
}

static void reply_to_module(test_recorder *self, int socket, const uint8_t *payload)
{
    sj_link_module module;
    char path[1024];
    char plan_path[1024];
    memcpy(&module, payload, sizeof(module));
    assert_true(module.path_bytes < sizeof(path));
    memcpy(path, payload + sizeof(module), module.path_bytes);
    path[module.path_bytes] = '\0';
    self->modules++;
    self->saw_agent |= strstr(path, "libsojourn-agent") != NULL;
    self->saw_build_id |= module.is_main && module.build_id_bytes == 20;
    const bool planned = module.is_main || strstr(path, "sample-plugin") != NULL;
    if (!planned) {
        const sj_link_skip skip = {.reason = SJ_SKIP_MODULE};
        send_packet(socket, SJ_LINK_SKIP, &skip, sizeof(skip), NULL);
        return;
    }
    sample_plan plan;
    const uint64_t offset = find_symbol(path, module.is_main ? "sample_triple" : "plugin_triple");
    assert_true(offset != 0);
    build_plan(&plan, offset);
    if (self->fault == FAULT_BAD_PLAN) {
        plan.header.patch_count = 1000;
    }
    char cwd[512];
    assert_non_null(getcwd(cwd, sizeof(cwd)));
    snprintf(plan_path, sizeof(plan_path), "%s/%s/%u.plan", cwd, self->directory, self->plans++);
    FILE *file = fopen(plan_path, "w");
    assert_int_equal(fwrite(&plan, sizeof(plan), 1, file), 1);
    fclose(file);
    const sj_link_plan handle_packet = {.first_function = module.is_main ? 1 : 10 + self->plans,
                                        .path_bytes = (uint32_t)strlen(plan_path)};
    send_packet(socket, SJ_LINK_PLAN, &handle_packet, sizeof(handle_packet), plan_path);
}

static void handle_hello(test_recorder *self, int socket, const uint8_t *payload)
{
    sj_link_hello hello;
    memcpy(&hello, payload, sizeof(hello));
    self->hello_count[hello.occasion & 3]++;
    if (hello.occasion != SJ_OCCASION_DLOPEN) {
        assert_true(self->arena_count < RECORDER_ARENAS);
        memcpy(self->arenas[self->arena_count++], hello.arena_name, sizeof(hello.arena_name));
    }
    if (self->fault == FAULT_GARBAGE) {
        (void)!send(socket, "garbage", 7, MSG_NOSIGNAL);
    } else {
        send_packet(socket, self->fault == FAULT_REFUSE ? SJ_LINK_REFUSED : SJ_LINK_WELCOME,
                    &self->welcome, sizeof(self->welcome), NULL);
    }
}

/* Replies to one packet. Returns false at the end of the connection. */
static bool handle_packet(test_recorder *self, int socket)
{
    static uint8_t packet[SJ_LINK_MAX_BYTES];
    sj_link_packet header;
    const ssize_t got = recv(socket, packet, sizeof(packet), 0);
    if (got < (ssize_t)sizeof(header)) {
        return false;
    }
    memcpy(&header, packet, sizeof(header));
    const uint8_t *payload = packet + sizeof(header);
    sj_link_applied applied;
    switch (header.type) {
    case SJ_LINK_HELLO:
        handle_hello(self, socket, payload);
        return self->fault != FAULT_AFTER_WELCOME;
    case SJ_LINK_MODULE:
        reply_to_module(self, socket, payload);
        return true;
    case SJ_LINK_APPLIED:
        memcpy(&applied, payload, sizeof(applied));
        self->hooked += applied.hooked;
        self->failed += applied.failed;
        return self->fault != FAULT_AFTER_APPLIED;
    case SJ_LINK_UNLOADED:
        self->unloaded++;
        return true;
    default:
        assert_int_equal(header.type, SJ_LINK_DONE);
        self->done++;
        send_packet(socket, SJ_LINK_DONE, NULL, 0, NULL);
        return true;
    }
}

static void converse(test_recorder *self)
{
    const int socket = accept4(self->listener, NULL, NULL, SOCK_CLOEXEC);
    while (handle_packet(self, socket)) {
    }
    close(socket);
}

void test_recorder_run(test_recorder *self, char *const *arguments, char *const *environment)
{
    int output[2];
    size_t used = 0;
    assert_int_equal(pipe2(output, O_CLOEXEC), 0);
    const pid_t child = fork();
    if (child == 0) {
        dup2(output[1], STDOUT_FILENO);
        execve(arguments[0], arguments, environment);
        _exit(127);
    }
    close(output[1]);
    for (bool open = true; open;) {
        struct pollfd events[2] = {{.fd = output[0], .events = POLLIN},
                                   {.fd = self->listener, .events = POLLIN}};
        const nfds_t count = self->fault == FAULT_NO_SOCKET ? 1 : 2;
        assert_true(poll(events, count, 60000) > 0);
        if ((events[1].revents & POLLIN) != 0) {
            converse(self);
        }
        if (events[0].revents != 0) {
            const ssize_t got =
                read(output[0], self->output + used, sizeof(self->output) - 1 - used);
            used += got > 0 ? (size_t)got : 0;
            open = got > 0;
        }
    }
    self->output[used] = '\0';
    close(output[0]);
    assert_int_equal(waitpid(child, &self->status, 0), child);
}
