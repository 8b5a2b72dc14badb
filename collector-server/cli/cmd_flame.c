/* Design notes. This program computes all coordinates, so a viewer shows the graph without running
 * the script in the file. The script only zooms and searches. Call paths that are too narrow to see
 * are left out; the file says how many. */
#include "collector-server/cli/call_choice.h"
#include "collector-server/cli/commands.h"
#include "collector-server/cli/query_command.h"
#include "collector-server/cli/text_width.h"
#include "collector-server/cli/work_progress.h"
#include "collector-server/export/xml_text.h"
#include "collector-server/query/query.h"
#include "proto/base/units.h"
#include "schema/queries/cli/flame.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

enum { WIDTH = 1200, ROW_HEIGHT = 18, HEAD_HEIGHT = 56, LETTER_WIDTH = 7 }; /* in pixels */

static const double least_width = 0.3; /* in pixels */

/* The script in the file. A click on a call path zooms in. A click on the title, or Escape, zooms
 * out. Ctrl-F searches. */
static const char script[] =
    "const svg=document.currentScript.closest('svg'),W=1200;"
    "const all=[...svg.querySelectorAll('g.p')];"
    "function label(t,w){const s=t.dataset.n,k=Math.floor((w-6)/7);"
    "t.textContent=k<3?'':s.length<=k?s:s.slice(0,k-1)+'\\u2026'}"
    "function show(x0,x1,d){const k=W/(x1-x0);for(const g of all){const r=g.children[1],"
    "t=g.children[2],x=+g.dataset.x,w=+g.dataset.w;const above=+g.dataset.d<d;"
    "const a=above&&x<=x0+1e-6&&x+w>=x1-1e-6;const vis=a||(!above&&x<x1-1e-9&&x+w>x0+1e-9);"
    "g.style.display=vis?'':'none';if(!vis)continue;const nx=a?0:(x-x0)*k,nw=a?W:w*k;"
    "r.setAttribute('x',nx);r.setAttribute('width',Math.max(nw,.1));t.setAttribute('x',nx+3);"
    "g.style.opacity=a?.6:1;label(t,nw)}}"
    "all.forEach(g=>g.addEventListener('click',()=>show(+g.dataset.x,+g.dataset.x+ +g.dataset.w,"
    "+g.dataset.d)));"
    "svg.querySelector('#title').addEventListener('click',()=>show(0,W,0));"
    "function find(q){let n=0,s=0;for(const g of all){const hit=q&&"
    "g.children[2].dataset.n.toLowerCase().includes(q.toLowerCase());"
    "g.children[1].setAttribute('stroke',hit?'#c0c':'none');if(hit){n++;s+=+g.dataset.s}}"
    "svg.querySelector('#found').textContent=q?n+' paths match \"'+q+'\", '+"
    "(100*s).toFixed(1)+' % self time':''}"
    "addEventListener('keydown',e=>{if((e.ctrlKey||e.metaKey)&&e.key==='f'){e.preventDefault();"
    "find(prompt('Search functions')||'')}if(e.key==='Escape')show(0,W,0)});";

typedef struct flame_totals {
    double whole_ns;       /* time of all chosen calls: the width of the graph */
    int64_t depth;         /* number of rows */
    int64_t shown, hidden; /* call paths */
    char title[256];
} flame_totals;

/* Derives the colour from the name alone, so a function has the same colour in every file. */
static void write_colour(FILE *output, const char *name)
{
    uint32_t hash = 2166136261u;
    for (; *name != '\0'; ++name) {
        hash = (hash ^ (unsigned char)*name) * 16777619u;
    }
    fprintf(output, "hsl(%u,%u%%,%u%%)", 15 + hash % 45, 65 + hash / 64 % 30,
            58 + hash / 4096 % 14);
}

/* Returns the duration in column `time_column` as text. The text begins with "~" if the column
 * `estimate_column` says that the duration is an estimate. */
static const char *format_time(sqlite3_stmt *row, int time_column, int estimate_column,
                               char text[SJ_DURATION_TEXT_BYTES + 1])
{
    text[0] = '~';
    sj_format_duration(sqlite3_column_int64(row, time_column),
                       text + (sqlite3_column_int64(row, estimate_column) != 0));
    return text;
}

/* Returns the number of calls that had not returned, as ", 1 open". Returns "" if all returned. */
static const char *format_open(sqlite3_stmt *row, int column, char text[SJ_COUNTED_BYTES])
{
    const long long open = sqlite3_column_int64(row, column);
    text[0] = '\0';
    if (open != 0) {
        snprintf(text, SJ_COUNTED_BYTES, ", %lld open", open);
    }
    return text;
}

/* Writes a call path. The columns of `row` are: name; depth; left edge, total and self time in ns;
 * calls; whether total and self are estimates; number of open calls. */
static void write_path(FILE *output, sqlite3_stmt *row, flame_totals *totals)
{
    char total[SJ_DURATION_TEXT_BYTES + 1];
    char self[SJ_DURATION_TEXT_BYTES + 1];
    char open[SJ_COUNTED_BYTES];
    const char *name = (const char *)sqlite3_column_text(row, 0);
    const int64_t depth = sqlite3_column_int64(row, 1);
    const double x = sqlite3_column_double(row, 2) / totals->whole_ns * WIDTH;
    const double width = sqlite3_column_double(row, 3) / totals->whole_ns * WIDTH;
    if (width < least_width) {
        ++totals->hidden;
        return;
    }
    ++totals->shown;
    name = name != NULL ? name : "(unknown function)";
    const long long y = HEAD_HEIGHT + depth * ROW_HEIGHT;
    fprintf(output,
            "<g class=\"p\" data-x=\"%.4f\" data-w=\"%.4f\" data-d=\"%lld\" data-s=\"%.6f\">", x,
            width, (long long)depth, sqlite3_column_double(row, 4) / totals->whole_ns);
    fputs("<title>", output);
    sj_xml_text(output, name);
    fprintf(output,
            "\n%s (%.2f %%), self %s, %s%s</title><rect x=\"%.2f\" y=\"%lld\" "
            "width=\"%.2f\" height=\"%d\" rx=\"1\" fill=\"",
            format_time(row, 3, 6, total), 100.0 * sqlite3_column_double(row, 3) / totals->whole_ns,
            format_time(row, 4, 7, self), SJ_COUNTED(sqlite3_column_int64(row, 5), "call"),
            format_open(row, 8, open), x, y, width, ROW_HEIGHT - 1);
    write_colour(output, name);
    fprintf(output, "\"/><text x=\"%.2f\" y=\"%lld\" data-n=\"", x + 3, y + ROW_HEIGHT - 5);
    sj_xml_text(output, name);
    fputs("\">", output);
    const int letters = (int)((width - 6) / LETTER_WIDTH);
    if (letters >= 3) {
        char cut[256];
        const size_t bytes = sj_text_cut(name, letters < 200 ? letters : 200);
        const bool whole = name[bytes] == '\0';
        const size_t kept = whole ? bytes : sj_text_cut(name, letters - 1);
        snprintf(cut, sizeof(cut), "%.*s%s", (int)(kept < 240 ? kept : 240), name,
                 whole ? "" : "\xe2\x80\xa6");
        sj_xml_text(output, cut);
    }
    fputs("</text></g>\n", output);
}

static void write_head(FILE *output, const flame_totals *totals, bool html)
{
    char whole[SJ_DURATION_TEXT_BYTES];
    const long long height = HEAD_HEIGHT + totals->depth * ROW_HEIGHT + 28;
    fputs(html ? "<!doctype html><meta charset=\"utf-8\"><title>Flame graph</title>\n"
               : "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n",
          output);
    fprintf(output,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%lld\" viewBox=\"0 0 "
            "%d %lld\" role=\"img\">\n<style>text{font:12px monospace;fill:#222}g.p{cursor:pointer}"
            "g.p:hover rect{stroke:#000}#title{font-size:15px;cursor:pointer}</style>\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"#fdfaf4\"/>\n"
            "<text id=\"title\" x=\"8\" y=\"22\">",
            WIDTH, height, WIDTH, height);
    sj_xml_text(output, totals->title);
    fprintf(output,
            "</text>\n<text x=\"8\" y=\"42\">%s in all recorded calls; click: zoom, title or "
            "Escape: all, Ctrl-F: search. <tspan id=\"found\"></tspan></text>\n",
            sj_format_duration((int64_t)totals->whole_ns, whole));
}

static void write_foot(FILE *output, const flame_totals *totals)
{
    fprintf(output, "<text x=\"8\" y=\"%lld\">%s shown",
            (long long)(HEAD_HEIGHT + totals->depth * ROW_HEIGHT + 18),
            SJ_COUNTED(totals->shown, "call path"));
    if (totals->hidden != 0) {
        fprintf(output, ", %lld narrower than %.1f pixels left out", (long long)totals->hidden,
                least_width);
    }
    fprintf(output, "</text>\n<script><![CDATA[%s]]></script>\n</svg>\n", script);
}

static int read_totals(sqlite3 *database, int64_t session_id, const sj_call_choice *choice,
                       flame_totals *totals)
{
    sqlite3_stmt *statement = NULL;
    int exit_code = SJ_EXIT_FAILED;
    if (sqlite3_prepare_v2(database, sj_flame_totals_sql, -1, &statement, NULL) == SQLITE_OK) {
        sqlite3_bind_int64(statement, 1, session_id);
        sj_call_choice_bind(choice, statement);
        if (sqlite3_step(statement) == SQLITE_ROW) {
            totals->whole_ns = sqlite3_column_double(statement, 0);
            totals->depth = sqlite3_column_int64(statement, 1);
            snprintf(totals->title, sizeof(totals->title), "%s",
                     (const char *)sqlite3_column_text(statement, 2));
            exit_code = SJ_EXIT_OK;
        }
    }
    sqlite3_finalize(statement);
    if (exit_code != SJ_EXIT_OK) {
        return sj_command_error(&sj_command_flame, exit_code, "%s", sqlite3_errmsg(database));
    }
    return totals->whole_ns > 0
               ? SJ_EXIT_OK
               : sj_command_error(&sj_command_flame, SJ_EXIT_NOT_FOUND,
                                  "no call of session %lld has ended", (long long)session_id);
}

typedef struct flame_writer {
    FILE *output;
    flame_totals totals;
} flame_writer;

static sj_status write_row(void *context, sqlite3_stmt *row)
{
    flame_writer *writer = context;
    write_path(writer->output, row, &writer->totals);
    return SJ_OK;
}

static int write_flame(sqlite3 *database, int64_t session_id, const sj_call_choice *choice,
                       FILE *output, bool html)
{
    flame_writer writer = {.output = output};
    sqlite3_stmt *row = NULL;
    sj_error error = {0};
    const int exit_code = read_totals(database, session_id, choice, &writer.totals);
    if (exit_code != SJ_EXIT_OK) {
        return exit_code;
    }
    if (sqlite3_prepare_v2(database, sj_flame_rows_sql, -1, &row, NULL) != SQLITE_OK) {
        return sj_command_error(&sj_command_flame, SJ_EXIT_FAILED, "%s", sqlite3_errmsg(database));
    }
    sqlite3_bind_int64(row, 1, session_id);
    sj_call_choice_bind(choice, row);
    write_head(output, &writer.totals, html);
    const sj_status status = sj_sql_each_row(row, write_row, &writer, &error);
    sqlite3_finalize(row);
    write_foot(output, &writer.totals);
    return status == SJ_OK ? SJ_EXIT_OK : sj_command_failed(&sj_command_flame, &error);
}

static int draw_session(const sj_query_options *options, sj_call_choice *choice, const char *path)
{
    sqlite3 *database;
    int64_t session_id;
    int exit_code = sj_query_open(&sj_command_flame, options, &database, &session_id);
    if (exit_code != SJ_EXIT_OK) {
        return exit_code;
    }
    sj_error error = {0};
    if (sj_call_choice_find(database, session_id, choice, &error) != SJ_OK) {
        sqlite3_close(database);
        return sj_command_failed(&sj_command_flame, &error);
    }
    if (choice->selection != NULL) {
        sj_query_warn_of_totals(&sj_command_flame, database, session_id);
    }
    const size_t length = strlen(path);
    const bool html = length > 5 && strcmp(path + length - 5, ".html") == 0;
    sj_output_file output;
    exit_code = sj_query_output_open(&sj_command_flame, database,
                                     strcmp(path, "-") == 0 ? NULL : path, &output);
    if (exit_code == SJ_EXIT_OK) {
        exit_code = write_flame(database, session_id, choice, output.file, html);
        exit_code = sj_output_file_close(&sj_command_flame, &output, exit_code);
    }
    sqlite3_close(database);
    return exit_code;
}

typedef struct flame_request {
    sj_query_options query;
    sj_call_choice choice;
    const char *output;
} flame_request;

static int run_flame(int argc, char **argv)
{
    flame_request request = {.output = "flame.svg"};
    int first = 0;
    const int code = sj_options_parse(&sj_command_flame, argc, argv, &request, &first);
    const int choice_code =
        code >= 0 ? code : sj_call_choice_check(&sj_command_flame, &request.choice);
    if (choice_code >= 0) {
        return choice_code;
    }
    sj_work_progress_start();
    const int file_code =
        sj_query_parse_file(&sj_command_flame, argc, argv, first, &request.query.file);
    if (file_code >= 0) {
        return file_code;
    }
    if (request.choice.function != NULL && request.choice.callers != NULL) {
        return sj_command_usage_error(&sj_command_flame,
                                      "--function and --callers exclude each other");
    }
    const int exit_code = draw_session(&request.query, &request.choice, request.output);
    sj_call_choice_deinit(&request.choice);
    return exit_code;
}

static const sj_option flame_options[] = {
    SJ_DATABASE_OPTION(offsetof(flame_request, query.file)),
    SJ_QUERY_SESSION_OPTION(offsetof(flame_request, query)),
    SJ_QUERY_CLUSTER_OPTIONS(offsetof(flame_request, query)),
    {.name = "output",
     .letter = 'o',
     .argument = "FILE",
     .kind = SJ_ARG_TEXT,
     .offset = offsetof(flame_request, output),
     .help = "output file (default flame.svg; - is standard output)"},
    SJ_CALL_FUNCTION_OPTIONS(offsetof(flame_request, choice), "only what these functions call",
                             "only what functions of these modules call"),
    SJ_CALL_CALLERS_OPTION(offsetof(flame_request, choice)),
    SJ_CALL_CHOICE_OPTIONS(offsetof(flame_request, choice)),
    {0}};

const sj_command sj_command_flame = {
    .name = "flame",
    .summary = "draw the call tree of a session as a flame graph",
    .usage = "sojourn flame [OPTIONS] [FILE]",
    .help =
        "Writes one self-contained file: HTML if its name ends in .html, else SVG. Click to zoom,\n"
        "Ctrl-F to search.\n",
    .options = flame_options,
    .examples = "Examples:\n"
                "  sojourn flame\n"
                "  sojourn flame --session 7 -o slow.html lab.db\n",
    .run = run_flame,
};
