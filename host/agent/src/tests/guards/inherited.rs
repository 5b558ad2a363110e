//! Approvals of the methods of entities that a guarded tool returned.

use super::*;

// accept: 27, accept: 80
#[tokio::test]
async fn methods_of_entities_are_guarded_by_their_own_id_and_by_the_tool_that_returned_them() {
    let delete_method = ToolSelector::later("native#customer.delete");
    for (count, name, arguments) in [
        (1, "customer_c1_delete", json!({})),
        (SHARED_COUNT, "customer_delete", json!({"customer_id": "c-1"})),
    ] {
        let steps = || [invoke("find"), call([(name, arguments.clone())])];
        let unguarded = run_steps(steps(), |builder| builder.tools([find("find", count)])).await;
        assert_eq!(unguarded[1], "deleted");
        let guard_method = |builder: ConversationBuilder| {
            builder
                .tools([find("find", count)])
                .decorate(delete_method.clone(), deny_all())
        };
        let guarded_by_id = run_steps(steps(), guard_method).await;
        assert!(guarded_by_id[1].contains(DENIED), "{name}: {}", guarded_by_id[1]);
        // Approves the call of `find`, and denies the later call of the method.
        let has_approved = Arc::new(Mutex::new(false));
        let approve_once = ApprovalGate::new(move |request: &ApprovalRequest| {
            if std::mem::replace(&mut *has_approved.lock().unwrap(), true) {
                return Approval::Denied {
                    reason: request.name.clone(),
                };
            }
            Approval::Approved
        });
        let find = Arc::new(find("find", count).with_decorator(approve_once)) as Arc<dyn Tool>;
        let guarded_by_find = run_steps(steps(), |builder| builder.tools([find])).await;
        assert!(guarded_by_find[1].contains(DENIED), "{name}: {}", guarded_by_find[1]);
    }
}

// accept: 80
#[tokio::test]
async fn an_inherited_approval_stays_when_an_unguarded_tool_returns_the_entity_again() {
    let steps = [invoke("find"), invoke("list"), invoke("customer_c1_delete")];
    let results = run_steps(steps, |builder| {
        builder
            .tools([find("find", 1), find("list", 1)])
            .decorate("find", approve_only_find())
    });
    assert!(results.await[2].contains(DENIED));
}

/// Returns a step that deletes `c-1` with the method that the customers share.
fn delete_shared() -> Step {
    call([("customer_delete", json!({"customer_id": "c-1"}))])
}

// accept: 80
#[tokio::test]
async fn an_inherited_approval_applies_to_shared_methods() {
    let set_up =
        |builder: ConversationBuilder| builder.tools([find("find", 1), find("see", 1), find("list", SHARED_COUNT)]);
    for tool_names in [
        &["find", "list"][..],
        &["find", "list", "list"],
        &["see", "list", "find"],
        &["list", "find"],
    ] {
        let steps = || tool_names.iter().map(|name| invoke(name)).chain([delete_shared()]);
        let unguarded = run_steps(steps(), set_up).await;
        assert_eq!(unguarded.last().unwrap(), "deleted", "{tool_names:?}");
        let guarded = run_steps(steps(), |builder| set_up(builder).decorate("find", approve_only_find())).await;
        assert!(guarded.last().unwrap().contains(DENIED), "{tool_names:?}: {guarded:?}");
    }
    let results = run_steps([invoke("find"), invoke("list"), delete_shared()], |builder| {
        set_up(builder).decorate("see", deny_all())
    });
    assert_eq!(
        results.await[2],
        "deleted",
        "the guarded tool `see` did not return the customer"
    );
}

/// Returns a tool like [`find`] with another rebinding: if a customer is returned again, its methods act on the first object.
fn find_first_wins(name: &str, count: usize) -> Arc<dyn Tool> {
    tool(name, move |_, _| {
        let customer = |id| NativeEntity::new("customer", Arc::new(())).with_id(format!("c-{id}"));
        let result = ToolResult::text("found");
        Ok((1..=count).fold(result, |result, id| result.with_provider(with_delete(customer(id)))))
    })
}

// accept: 80
#[tokio::test]
async fn a_shared_method_with_an_inherited_guard_requests_one_approval() {
    let request_count = Arc::new(Mutex::new(0));
    let count = request_count.clone();
    let approve = ApprovalGate::new(move |request: &ApprovalRequest| {
        *count.lock().unwrap() += i32::from(request.name.starts_with("customer"));
        Approval::Approved
    });
    let steps = [invoke("find"), invoke("list"), delete_shared()];
    let results = run_steps(steps, |builder| {
        builder
            .tools([find_first_wins("find", 1), find_first_wins("list", SHARED_COUNT)])
            .decorate("find", approve)
    });
    assert_eq!(results.await[2], "deleted");
    assert_eq!(*request_count.lock().unwrap(), 1);
    let steps = [invoke("see"), invoke("list"), invoke("find"), delete_shared()];
    let results = run_steps(steps, |builder| {
        builder
            .tools([
                find_first_wins("see", 1),
                find_first_wins("list", SHARED_COUNT),
                find_first_wins("find", 1),
            ])
            .decorate("find", approve_only_find())
    });
    assert!(
        results.await[3].contains(DENIED),
        "the approval applies although the group keeps the object that `see` returned"
    );
}

// accept: 80, accept: 133
#[tokio::test]
async fn an_inherited_approval_applies_to_shared_methods_after_a_resume() {
    let set_up = |steps: Vec<Step>| {
        let (builder, model) = TestModel::playing(steps);
        let builder = builder.tools([find("find", 1), find("list", SHARED_COUNT)]);
        (builder.decorate("find", approve_only_find()), model)
    };
    let (builder, model) = set_up(vec![invoke("find"), reply("ok")]);
    let history = builder.run("go").await.unwrap().history;
    let (builder, _) = set_up(vec![invoke("list"), delete_shared(), reply("ok")]);
    let resumed = builder.history(history).resume(model.events());
    let history = resumed.run("again").await.unwrap().history;
    let results = tool_results(&history);
    assert!(results.last().unwrap().contains(DENIED), "{results:?}");
}

#[tokio::test]
async fn chained_methods_are_guarded_and_still_wait_for_an_object() {
    let customers =
        toolwit_core::EntityMethods::<()>::new("customer").method("delete", "Deletes.", |_, _: NoArguments, _| async {
            Ok::<_, String>("deleted")
        });
    let customers = customers.unwrap();
    let steps = [invoke("customer_delete"), invoke("find"), invoke("customer_delete")];
    let results = run_steps(steps, |builder| {
        builder
            .tools([find("find", 1)])
            .chain_from(&customers)
            .decorate("native#customer.delete", deny_all())
    });
    let results = results.await;
    assert!(results[0].contains("not available yet"), "{}", results[0]);
    assert!(results[2].contains(DENIED), "{}", results[2]);
}
