/* Packets from a hostile program to the recorder's end of the link.
 *
 * Byte 0 of the input chooses what the recording selects. Packets follow: u8 type, u8 how it is
 * sent (packet_form), u16 bytes of its payload, u16 bytes of its memory file, and both. The folder
 * of the run holds an ELF file "m", an assembly "a.dll" and its symbols "a.dll.mdb", and a pipe
 * "p". It becomes the working folder, so give libFuzzer absolute paths. */
#include "agent/link/link_server.h"
#include "agent/policy/policy.h"
#include "proto/wire/frame.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    CHOICE_LIBRARY_CALLS = 1,
    CHOICE_RECEIVERS = 2,
    CHOICE_LINES = 4,
    CHOICE_IN_PLACE = 8,
    CHOICE_NO_HELLO = 16
};

/* Bits that say how a packet is sent. */
typedef enum packet_form {
    FORM_FILE = 1,
    FORM_TWO_FILES = 2,
    FORM_NO_HEAD = 4, /* the payload is the whole packet, including its head */
    FORM_PIPE = 8     /* the file is a pipe */
} packet_form;

enum { CHOICES = 16, FILES_MAX = 2, DESCRIPTORS_MAX = 32, WRITER_INPUTS = 128 };

static const uint8_t types[] = {SJ_LINK_HELLO,
                                SJ_LINK_MODULE,
                                SJ_LINK_APPLIED,
                                SJ_LINK_DONE,
                                SJ_LINK_UNLOADED,
                                SJ_LINK_METHODS,
                                SJ_LINK_TRANSITION,
                                SJ_LINK_IMPORTS,
                                SJ_LINK_CONTAINER,
                                SJ_LINK_CLASS,
                                SJ_LINK_JVM_STATE,
                                SJ_LINK_STALL,
                                SJ_LINK_REPLACED_METHODS,
                                SJ_LINK_LINES,
                                SJ_LINK_NO_LINES,
                                SJ_LINK_CODE,
                                SJ_LINK_CLASSES,
                                SJ_LINK_TRACER,
                                SJ_LINK_NO_METHODS,
                                SJ_LINK_MARK,
                                SJ_LINK_TRIGGER,
                                SJ_LINK_POLICY,
                                SJ_LINK_POLICY_ASK};

/* State that lasts for all inputs. */
static struct {
    char folder[64];
    sj_spool *spool;
    /* recreated every WRITER_INPUTS inputs, because it has a large buffer */
    sj_frame_writer *writer;
    uint64_t inputs;
    sj_policy policies[CHOICES];
    sj_class_table *classes;
} world;

/* One recording. */
typedef struct recording {
    sj_function_rules *rules;
    sj_registry *registry;
    sj_link_server *server;
    int agent;
    int descriptors; /* result of count_descriptors at the start */
} recording;

#define must(holds) must_at((holds), __LINE__)

static void must_at(bool holds, int line)
{
    if (!holds) {
        fprintf(stderr, "link_fuzz.c:%d does not hold\n", line);
        abort();
    }
}

static sj_status join(void *context, const sj_link_process *process)
{
    (void)context;
    must(process->number != 0 && strchr(process->arena_name, '/') == NULL);
    return SJ_OK;
}

static sj_status write_mark(void *context, const char *name, bool end)
{
    must(name[0] != '\0' && strlen(name) <= SJ_LINK_MARK_NAME_BYTES);
    return sj_frame_writer_mark(context, name, end, 1, 0, "cli");
}

static sj_status ignore_trigger(void *context, const char *name)
{
    (void)context;
    must(name[0] != '\0' && strlen(name) <= SJ_LINK_MARK_NAME_BYTES);
    return SJ_OK;
}

static sj_status parse_policy(void *context, sj_slice document, int fd)
{
    sj_policy policy;
    (void)context;
    const sj_status status =
        sj_policy_parse((const char *)document.data, document.size, "fuzz", &policy, NULL);
    if (status == SJ_OK) {
        sj_policy_free(&policy);
        sj_link_reply(fd, SJ_LINK_DONE, "obeyed");
    }
    return status;
}

static void handle_stall(void *context, const char *name, uint64_t waited_ns)
{
    (void)context;
    (void)waited_ns;
    must(name[0] != '\0');
}

/* Counts the descriptors of the kinds that packets carry: memory files that can be sealed, and
 * pipes. */
static int count_descriptors(void)
{
    int count = 0;
    for (int fd = 0; fd < DESCRIPTORS_MAX; fd++) {
        count += fcntl(fd, F_GET_SEALS) == 0 || fcntl(fd, F_GETPIPE_SZ) > 0;
    }
    return count;
}

static void copy_file(const char *from, const char *name)
{
    uint8_t bytes[64 * 1024];
    char path[256];
    const int source = open(from, O_RDONLY | O_CLOEXEC);
    const ssize_t size = read(source, bytes, sizeof(bytes));
    snprintf(path, sizeof(path), "%s/%s", world.folder, name);
    const int target = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    must(size > 0 && write(target, bytes, (size_t)size) == size);
    close(source);
    close(target);
}

static void remove_world(void)
{
    char command[128];
    sj_frame_writer_free(world.writer);
    sj_spool_close(world.spool);
    snprintf(command, sizeof(command), "rm -rf '%s'", world.folder);
    must(system(command) == 0);
}

static void make_policies(void)
{
    static const char text[] =
        "{\"policy\": 1, \"values\": [{\"name\": \"a\", \"function\": \"*\", \"argument\": 1, "
        "\"as\": \"int\", \"change\": {\"set\": 9}}]}";
    for (unsigned i = 0; i < CHOICES; i++) {
        sj_policy *policy = &world.policies[i];
        sj_error error = {0};
        if (sj_policy_parse(text, sizeof(text) - 1, "fuzz", policy, &error) != SJ_OK) {
            fprintf(stderr, "link_fuzz: %s\n", error.text);
            abort();
        }
        policy->selection.library_calls = (i & CHOICE_LIBRARY_CALLS) != 0;
        for (size_t k = 0; k < SJ_RUNTIMES; k++) {
            sj_runtime_selection *runtime = &policy->selection.runtimes[k];
            runtime->dispatch = true;
            runtime->receivers = (i & CHOICE_RECEIVERS) != 0;
            runtime->lines = (i & CHOICE_LINES) != 0;
            runtime->in_place = (i & CHOICE_IN_PLACE) != 0;
        }
    }
}

static void make_world(void)
{
    char spool[96];
    snprintf(world.folder, sizeof(world.folder), "/dev/shm/link_fuzz.XXXXXX");
    must(mkdtemp(world.folder) != NULL);
    must(atexit(remove_world) == 0);
    copy_file(CORPUS "/planner_elf/gcc_stripped", "m");
    copy_file(CORPUS "/mono_assembly/values", "a.dll");
    copy_file(CORPUS "/mono_symbols/mdb", "a.dll.mdb");
    must(chdir(world.folder) == 0 && mkfifo("p", 0600) == 0);
    snprintf(spool, sizeof(spool), "%s/spool", world.folder);
    const sj_spool_options options = {.directory = spool, .reserve_bytes = 1};
    must(sj_spool_open(&options, &world.spool, NULL) == SJ_OK);
    make_policies();
}

static void connect_agent(recording *made)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof(address.sun_path), "%s/control", world.folder);
    made->agent = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    must(made->agent >= 0 &&
         connect(made->agent, (const struct sockaddr *)&address, sizeof(address)) == 0);
    sj_link_server_step(made->server, 0);
}

static void renew_writer(void)
{
    const sj_frame_writer_options options = {.spool = world.spool};
    if (world.inputs++ % WRITER_INPUTS == 0) {
        sj_frame_writer_free(world.writer);
        must(sj_frame_writer_new(&options, &world.writer) == SJ_OK);
    }
}

static void begin(recording *made, uint8_t choice)
{
    sj_policy *policy = &world.policies[choice % CHOICES];
    must(sj_function_rules_new(policy, &made->rules) == SJ_OK &&
         sj_class_table_new(&world.classes) == SJ_OK);
    sj_selection_set_classes(&policy->selection, sj_class_table_find, world.classes);
    const sj_registry_options registry = {.writer = world.writer,
                                          .selection = &policy->selection,
                                          .rules = made->rules,
                                          .runtime_directory = world.folder,
                                          .cache_directory = world.folder,
                                          .classes = world.classes,
                                          .plan_threads = 1};
    must(sj_registry_new(&registry, &made->registry) == SJ_OK);
    const sj_link_server_options link = {.runtime_directory = world.folder,
                                         .registry = made->registry,
                                         .context = world.writer,
                                         .joined = join,
                                         .mark = write_mark,
                                         .trigger = ignore_trigger,
                                         .stall = handle_stall,
                                         .policy = parse_policy,
                                         .threadless = true};
    must(sj_link_server_start(&link, &made->server, NULL) == SJ_OK);
    connect_agent(made);
}

/* Reads the frames that the recorder made of the packets. The collector must be able to read them.
 */
static void send_frames(void)
{
    sj_slice bytes;
    uint64_t position;
    must(sj_frame_writer_retry(world.writer) == 0);
    while (sj_spool_next(world.spool, &bytes, &position) == SJ_OK) {
        sj_frame_view frame;
        must(sj_frame_read(bytes, &frame) == SJ_OK);
        must(sj_spool_acknowledge(world.spool, position) == SJ_OK);
    }
}

static void end(recording *made)
{
    close(made->agent);
    sj_link_server_step(made->server, 0);
    sj_link_server_stop(made->server);
    send_frames();
    sj_registry_free(made->registry);
    sj_function_rules_free(made->rules);
    sj_class_table_free(world.classes);
    must(count_descriptors() == made->descriptors);
}

/* Checks the head of each reply. If the recorder refused a packet of the program, the program
 * connects again. */
static void read_replies(recording *made)
{
    static uint8_t packet[SJ_LINK_MAX_BYTES + 1];
    ssize_t got;
    while ((got = recv(made->agent, packet, sizeof(packet), MSG_DONTWAIT)) > 0) {
        sj_link_packet head;
        must((size_t)got >= sizeof(head) && got <= SJ_LINK_MAX_BYTES);
        memcpy(&head, packet, sizeof(head));
        must(head.version == SJ_LINK_VERSION && head.payload_bytes == (size_t)got - sizeof(head));
    }
    if (got == 0) {
        close(made->agent);
        connect_agent(made);
    }
}

static int make_file(uint8_t form, sj_slice bytes)
{
    int ends[2];
    if ((form & FORM_PIPE) != 0) {
        must(pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0 && close(ends[1]) == 0);
        return ends[0];
    }
    const int file = memfd_create("class", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    must(file >= 0 && write(file, bytes.data, bytes.size) == (ssize_t)bytes.size);
    return file;
}

static void send_packet(const recording *made, uint8_t form, sj_slice packet, sj_slice file)
{
    _Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(FILES_MAX * sizeof(int))] = {0};
    int files[FILES_MAX];
    size_t count = 0;
    if ((form & (FORM_FILE | FORM_TWO_FILES)) != 0) {
        count = (form & FORM_TWO_FILES) != 0 ? 2 : 1;
    }
    for (size_t i = 0; i < count; i++) {
        files[i] = make_file(form, file);
    }
    struct iovec part = {.iov_base = (void *)(uintptr_t)packet.data, .iov_len = packet.size};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (count != 0) {
        message.msg_control = control;
        message.msg_controllen = CMSG_SPACE(count * sizeof(int));
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(count * sizeof(int));
        memcpy(CMSG_DATA(head), files, count * sizeof(int));
    }
    (void)!sendmsg(made->agent, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    for (size_t i = 0; i < count; i++) {
        close(files[i]);
    }
}

static void say(recording *made, uint8_t type, uint8_t form, sj_slice payload, sj_slice file)
{
    static uint8_t packet[sizeof(sj_link_packet) + UINT16_MAX];
    sj_writer writer = sj_writer_of(packet, sizeof(packet));
    const sj_link_packet head = {
        .version = SJ_LINK_VERSION, .type = type, .payload_bytes = (uint32_t)payload.size};
    if ((form & FORM_NO_HEAD) == 0) {
        sj_write_bytes(&writer, &head, sizeof(head));
    }
    sj_write_bytes(&writer, payload.data, payload.size);
    send_packet(made, form, (sj_slice){.data = packet, .size = sj_writer_used(&writer)}, file);
    sj_link_server_step(made->server, 0);
    read_replies(made);
}

static void say_hello(recording *made)
{
    const sj_link_hello hello = {.pid = 1, .tid = 1, .arena_name = "1.0.arena"};
    say(made, SJ_LINK_HELLO, 0, (sj_slice){.data = (const uint8_t *)&hello, .size = sizeof(hello)},
        (sj_slice){0});
}

static sj_slice read_slice(sj_reader *reader, size_t wanted)
{
    const size_t left = sj_reader_left(reader);
    const size_t size = wanted < left ? wanted : left;
    const uint8_t *bytes = sj_read_bytes(reader, size);
    return (sj_slice){.data = bytes, .size = bytes != NULL ? size : 0};
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    recording made = {.descriptors = count_descriptors()};
    sj_reader reader = sj_reader_of(data, size);
    const uint8_t choice = sj_read_u8(&reader);
    if (world.spool == NULL) {
        make_world();
    }
    renew_writer();
    begin(&made, choice);
    if ((choice & CHOICE_NO_HELLO) == 0) {
        say_hello(&made);
    }
    while (sj_reader_left(&reader) > 0 && !reader.bad) {
        const uint8_t type = types[sj_read_u8(&reader) % sizeof(types)];
        const uint8_t form = sj_read_u8(&reader);
        const uint16_t bytes = sj_read_u16(&reader);
        const uint16_t file_bytes = sj_read_u16(&reader);
        const sj_slice payload = read_slice(&reader, bytes);
        say(&made, type, form, payload, read_slice(&reader, file_bytes));
    }
    end(&made);
    return 0;
}
