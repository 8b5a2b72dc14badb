#include "collector-server/http/audited.h"

#include "collector-server/fleet/audit.h"
#include "collector-server/http/context.h"
#include "collector-server/store/database.h"
#include "proto/base/log.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static const char cut_mark[] = "... (cut)";

static void write_peer(struct MHD_Connection *connection, char text[INET6_ADDRSTRLEN])
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    const struct sockaddr *address = info != NULL ? info->client_addr : NULL;
    text[0] = '\0';
    if (address != NULL && address->sa_family == AF_INET) {
        inet_ntop(AF_INET, &((const struct sockaddr_in *)address)->sin_addr, text,
                  INET6_ADDRSTRLEN);
    } else if (address != NULL && address->sa_family == AF_INET6) {
        inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)address)->sin6_addr, text,
                  INET6_ADDRSTRLEN);
    }
}

/* FNV-1a. */
static uint64_t hash_text(uint64_t hash, const char *text)
{
    for (; *text != '\0'; text++) {
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    }
    return hash;
}

/* True if this token made the same request in this hour. Remembers only the latest requests, so a
 * forgotten one gets another row. */
static bool is_repeated(const sj_request *request)
{
    sj_http_context *context = request->context;
    uint64_t hash = hash_text(UINT64_C(0xcbf29ce484222325), request->visitor.who);
    hash = hash_text(hash ^ (uint64_t)(time(NULL) / 3600), request->object);
    hash = hash_text(hash, request->action);
    return atomic_exchange(&context->asked[hash % SJ_ASKED_REMEMBERED], hash) == hash;
}

void sj_audited_write(const sj_request *request, sj_status status, const sj_error *error)
{
    char peer[INET6_ADDRSTRLEN];
    char object[SJ_AUDITED_BYTES];
    sqlite3 *database = NULL;
    sj_error problem = {0};
    const sj_http_context *context = request->context;
    if (request->action == NULL || (request->is_question && !context->audits_questions) ||
        ((request->is_question || request->is_refused) && is_repeated(request))) {
        return;
    }
    write_peer(request->connection, peer);
    const size_t size = (size_t)snprintf(object, sizeof(object), "%s", request->object);
    if (size >= sizeof(object)) {
        memcpy(object + sizeof(object) - sizeof(cut_mark), cut_mark, sizeof(cut_mark));
    }
    const sj_audit_entry entry = {.who = request->visitor.who,
                                  .peer = peer,
                                  .action = request->action,
                                  .object = object,
                                  .outcome = status == SJ_OK ? "done" : error->text};
    sj_status written =
        sj_database_open(context->database_path, SJ_DATABASE_WRITE, &database, &problem);
    if (written == SJ_OK) {
        written = sj_audit_add(database, &entry, &problem);
    }
    sqlite3_close(database);
    if (written != SJ_OK) {
        sj_log(SJ_LOG_ERROR, "audit", "%s by %s from %s is not in the audit: %s", entry.action,
               entry.who, peer, problem.text);
    }
}
