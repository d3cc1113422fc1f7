#include "matmul/serve.h"

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <utility>

#include "time/schedule.h"

namespace evokernel::twin {

namespace {

struct Post {
    std::function<void()> work;
    const Core *from;
    double time;  // on the sender's clock
    std::shared_ptr<const race::Knowledge> before;  // what the work may rely on
};

// Of one block.
struct Mailbox {
    std::deque<Post> posts;
    std::map<const Core *, int> open;  // posts not yet done, by sender
    std::map<const Core *, double> done;
    std::map<const Core *, std::shared_ptr<const race::Knowledge>> after;
};

std::map<int64_t, Mailbox> &Mailboxes()
{
    static std::map<int64_t, Mailbox> boxes;
    return boxes;
}

Mailbox &BoxOf(const Core &core) { return Mailboxes()[core.block]; }

bool PostsOrEnd(void *context)
{
    const Core &core = *static_cast<Core *>(context);
    return !BoxOf(core).posts.empty() || VectorCoresDone(core);
}

bool AllDone(void *context)
{
    const Core &core = *static_cast<Core *>(context);
    return BoxOf(core).open[&core] == 0;
}

}  // namespace

const char *const kServing = Word("posted work");

void PostToCube(std::function<void()> work, At at)
{
    Core &core = TheCore();
    if (core.cubes == 0) {
        ReportError("wrong-core", at, "This needs a cube core, but the kernel runs on vector cores only; launch it as "
                                      "a mix kernel (KERNEL_TYPE_MIX_AIC_1_2 or __mix__(1, 2)).");
        return;
    }
    Mailbox &box = BoxOf(core);
    box.posts.push_back(Post{std::move(work), &core, core.time.Now(), race::Share(core)});
    ++box.open[&core];
}

void WaitForCube(At at)
{
    Core &core = TheCore();
    if (core.cubes == 0) {
        return;  // PostToCube has said so
    }
    BlockUntil(AllDone, &core, Word("the cube core's work"), at);
    core.time.NotBefore(Pipe::S, BoxOf(core).done[&core], Pipe::M);
    race::Learn(core, BoxOf(core).after[&core]);
}

void ServeVectorCores()
{
    Core &core = TheCore();
    while (true) {
        BlockUntil(PostsOrEnd, &core, kServing, core.last_at);
        Mailbox &box = BoxOf(core);
        if (box.posts.empty()) {
            return;
        }
        const Post post = std::move(box.posts.front());
        box.posts.pop_front();
        core.time.NotBefore(Pipe::S, post.time, Pipe::S);
        race::Learn(core, post.before);
        {
            const race::Ordered ordered(core);
            post.work();
        }
        box.after[post.from] = race::Share(core);
        --box.open[post.from];
        double &done = box.done[post.from];
        done = std::max(done, core.time.End());
    }
}

void ServeAndEndCore()
{
    ServeVectorCores();
    EndCore();
}

void ClearPosts() { Mailboxes().clear(); }

}  // namespace evokernel::twin
