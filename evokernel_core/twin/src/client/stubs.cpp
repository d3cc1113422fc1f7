// The stubs of all entry points, made of the table.
#include "client/client.h"
#include "evokernel/twin/stack.h"

namespace evokernel::twin {

namespace {

using client::HandleSelf;
using client::InOnlySelf;
using client::InOutSelf;
using namespace wire;  // the wrappers of the table

}  // namespace

#define EVK_STUB(id, where, Result, Name, Parameters, Arguments)                                     \
    Result Name Parameters { return client::Call<Result>(Entry::id, client::NoSelf{}, Pack Arguments); }
EVK_ENTRY_CALLS(EVK_STUB)

// The object lives in the judge; here it is its number.
namespace matmul {

class ObjectState {
public:
    uint32_t handle = 0;
};

}  // namespace matmul

#define EVK_SELF_InOut(Class) InOutSelf<Class>{this}
#define EVK_SELF_InOnly(Class) InOnlySelf<Class>{this}
#define EVK_SELF_Handle(Class) HandleSelf{state_->handle}
#define EVK_METHOD(id, Class, Travels, Result, Name, Parameters, Const, Arguments)                    \
    Result Class::Name Parameters Const                                                              \
    {                                                                                                \
        return client::Call<Result>(Entry::id, EVK_SELF_##Travels(Class), Pack Arguments);           \
    }
EVK_ENTRY_METHODS(EVK_METHOD)

namespace matmul {

Object::Object(const Spec &spec, bool cube_only) : state_(std::make_shared<ObjectState>())
{
    state_->handle = client::Call<uint32_t>(Entry::MatmulMake, client::NoSelf{}, Pack(spec, cube_only));
}

Object::~Object() { client::Call<void>(Entry::MatmulDrop, HandleSelf{state_->handle}, Pack()); }

// A core that serves others ends here: nothing after it runs.
void ServeIfDriven(bool cube_only, const Spec &spec, At at)
{
    Writer &writer = client::Open(Entry::ServeIfDriven);
    client::Put(writer, Pack(cube_only, spec, at));
    client::Ask();
}

}  // namespace matmul

}  // namespace evokernel::twin
